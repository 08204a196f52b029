"""Reports that people read, from runs on disk: HTML, Markdown with images, badge, CSV and Parquet, history.

`load` reads runs; `section` says what a run shows, as plain values in two languages; `html`, `markdown_report`, `badge`
and `export` write it. Needs the extra `reports` (Jinja2, Altair, vl-convert) for HTML and images.
"""
