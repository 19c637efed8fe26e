"""What the embedded model is asked where a test needs a right answer, so that a new checkpoint is checked once."""

SUM = ("What is 347 + 286?", "347 + 286 = 633")
SHORT = ("2 + 3", "2 + 3 = 5")
TWO_TURNS = (("What is 21 + 34?", "21 + 34 = 55"), ("And plus 4?", "55 + 4 = 59"))
LONG = ("What is 4821 - 3975?", "4821 - 3975 =")
