"""SYNTHESIZE: artificial tables with an exact epsilon.

request.py   what is requested                        run.py           check, charge, learn, record
plan.py      columns, model and shares of the loss    learn.py         learn one table through its diaries
result.py    synthetic tables and previews            checkpoint.py    the diary on disk while a synthesis runs
columns.py   policy to cells, codes to values         private_rows.py  the rows as counts of the engine
facts.py     public facts about the columns           diary.py         every private number and its loss
model.py     the protocol of a model                  files.py         tables as files
mechanisms/  the models                               quality/         quality reports, for the data holder
"""
