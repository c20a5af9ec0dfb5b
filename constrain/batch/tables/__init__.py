"""Tables: rows of Parquet and CSV files as tasks, and answers as rows. Every module here needs pyarrow.

Read ``cells`` first (the cells of a row become the fields of a line), then ``csv_text`` (the quotes of a CSV file),
``reading`` (a file's rows), ``columns`` (the columns of answers and their types), and ``writing`` (a table of lines of
answers). ``batch.inputs`` and ``batch.finishing`` call them, and ``constrain.ray`` uses the columns and the cells.
"""
