"""Why a server or command fails: one sentence and an exit code, never a traceback."""


class Failure(Exception):
    """Ends the process with one clear sentence on standard error."""

    exit_code = 1

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class BadUsage(Failure):
    """The command line or the environment asks for something that cannot be done."""

    exit_code = 2
