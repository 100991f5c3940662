"""What is the same everywhere: services, settings that are secrets, and the emulator's name, key and ports."""

SERVICES = ("blob", "queue", "table", "file")
#: The settings of an account whose value is a secret, unless it names a file.
SECRETS = ("connection-string", "account-key", "sas-token")
#: The audience of every token for storage, with the scope that a login is asked for. Clouds of their own have another.
STORAGE_SCOPE = "https://storage.azure.com/.default"
EMULATOR_NAME = "devstoreaccount1"
# The emulator's key is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
EMULATOR_PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10004}
