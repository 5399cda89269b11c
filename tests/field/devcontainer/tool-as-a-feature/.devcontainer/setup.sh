poetry install --no-root
