"""Does a file survive whatever kills the process that writes it? Kills thousands: at every write, and at any time.

    python -m benchmarks.crash --kills 1000
    python -m benchmarks.crash --every --kills 400

`operations` says what is killed, `points` where, `states` what a reader sees of a file; `rehearsal` is the undisturbed
run, `killing` are the others.

Each operation of the product first runs undisturbed in a child process. At each of its write statements (a row that is
written with many others counts as one, and so do BEGIN IMMEDIATE, COMMIT and VACUUM) it is noted what a reader sees
of the file at that point: its states, one for each commit. Each of them must be sound, with every document as it was or
as it will be, whole. Then the operation runs again and again on a copy of the same file, in a child that SIGKILL ends
just before or just after a statement, or at a random moment. After each kill:

- the file is in the one state that was committed at that point, all of it: documents, chunks, vectors, statistics,
  recorded answers, and what searches find, with their scores; at a random moment, in one of the states;
- `integrity_check`, `foreign_key_check` and `Desk.check` find nothing, the kept statistics equal a rebuild to the last
  digit, and every stored evaluation has all its cases;
- the same operation, run again, completes, and the file is as after the undisturbed run;
- what an upgrade set aside, and a backup, is whole where it has its name.

Exit code 1 when one of these did not hold; each is printed. The documents are small, and the sizes from which on
postings are packed and vectors are coded are lowered, so that a write does all that it does in a large file.
"""
