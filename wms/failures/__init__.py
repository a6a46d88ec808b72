"""Why things fail: messages of failures become groups, one for each cause."""
