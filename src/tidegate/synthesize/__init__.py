"""SYNTHESIZE: artificial tables with an exact epsilon.

request.py   what is asked                         run.py       check, charge, run, record
plan.py      what it comes to, by public facts     learning.py  one table, through its diaries
columns.py   policy -> cells, codes -> values      counting.py  the rows as counts of the engine
facts.py     what is public of the columns         diary.py     every private number and its price
model.py     what a model is                       keeping.py   the diary on disk while it is written
result.py    tables to draw from                   writing.py   tables as files
mechanisms/  the models                            quality/     how good a table is: for the data holder
scores/      how far a table is from a model
"""
