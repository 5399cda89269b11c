def create_app():
    return None
