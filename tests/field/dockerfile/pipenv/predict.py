import flask

app = flask.Flask("predict")
