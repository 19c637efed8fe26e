"""What the embedded model is asked where a test needs a right answer, so that a new checkpoint is checked once."""

SUM = ("What is 347 + 286?", "347 + 286 = 633")
SHORT = ("7 + 8", "7 + 8 = 15")
TWO_TURNS = (("What is 23 + 45?", "23 + 45 = 68"), ("And plus 1?", "68 + 1 = 69"))
LONG = ("What is 4821 - 3975?", "4821 - 3975 =")
THOUGHT = "ones"
