"""Polls: a collection with wording, from a few decisions to the results.

draft.py             a new poll from a few decisions      respondent_texts.py  what respondents read, with numbers from the channel
results.py           all questions of a poll, as a table  question_result.py   one question
estimates.py         how they are computed                text.py, charts.py   how they are shown
"""
