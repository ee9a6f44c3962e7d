"""SYNTHESIZE: artificial tables with an exact epsilon.

request.py   what is requested                     run.py           check, charge, learn, record
plan.py      what it comes to, by public facts     learn.py         one table, through its diaries
result.py    tables to draw from, and previews     checkpoint.py    the diary on disk while it is written
columns.py   policy -> cells, codes -> values      private_rows.py  the rows as counts of the engine
facts.py     what is public of the columns         diary.py         every private number and its price
model.py     what a model is                       files.py         tables as files
mechanisms/  the models                            quality/         how good a table is: for the data holder
"""
