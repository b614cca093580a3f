"""What is measured, each with one command; see README.md beside this file."""
