poetry install
