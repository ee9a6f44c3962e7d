"""SYNTHESIZE: artificial tables with an exact loss.

request.py     what is requested                        run.py           check, charge, learn, record
plan.py        columns, model and shares of the loss    learn.py         learn one table, or restore it as stored
result.py      synthetic tables and previews            checkpoint.py    the diary while a synthesis runs
description.py what is public about them, as text       source.py        where the rows of a table come from
condition.py   the conditions of a draw                 files.py         tables and models as files
columns.py     policy to cells, codes to values         private_rows.py  the rows as counts of the engine
facts.py       public facts about the columns           diary.py         every private number and its loss
model.py       the protocol of a model                  mechanisms/      the models
quality/       quality reports, for the data holder     progress.py      the display of long work
"""
