"""Information about files, file systems and security (MS-FSCC §2.4, §2.5), and the messages that carry it."""
