"""What several test files share, by topic.

| module | content |
|---|---|
| `literal/` | slow, literal twins: whole learners from the paper's text, kernels in NumPy |
| `fitting` | fit without warnings; hold a fitted learner against its literal twin |
| `sources`, `gpu_sources`, `dask_files` | random rows behind every kind of source |
| `random_models`, `saved_models`, `exported_models` | models made by hand; running exports |
| `reports` | tables and learners of the tests of reports |
| `damage`, `hostile`, `raw_files` | damaged files, hostile names, files as publishers write them |
| `processes` | commands run as another user |
"""
