"""What a teacher takes from the book: items with other numbers, question banks, downloads."""
