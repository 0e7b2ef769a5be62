"""Sentences of reports: functions from numbers to words, one module for each topic.

A function gets counts, rates and records, decides what they show, and returns a sentence or a list
of sentences. Nothing here computes a statistic, and nothing knows how a sentence is laid out.
"""
