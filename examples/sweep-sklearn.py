"""One training of many: which learning rate and how many leaves read hand-written digits best?

    mlenv run --matrix rate=0.03,0.1,0.3 --matrix leaves=4,16 --parallel 2 \
      scikit-learn -- python sweep-sklearn.py --rate {rate} --leaves {leaves}
"""
import argparse
import json
import os
import pathlib

from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--leaves", type=int, required=True)
    options = parser.parse_args()
    x, label = load_digits(return_X_y=True)
    train_x, test_x, train_label, test_label = train_test_split(x, label, test_size=0.25,
                                                                random_state=0)
    model = HistGradientBoostingClassifier(learning_rate=options.rate, max_leaf_nodes=options.leaves,
                                           max_iter=10, warm_start=True, random_state=0)
    for rounds in (10, 20, 30):
        model.set_params(max_iter=rounds)
        model.fit(train_x, train_label)
        print(f"{rounds} rounds  accuracy {model.score(test_x, test_label):.3f}", flush=True)
    metrics = {"accuracy": model.score(test_x, test_label),
               "loss": log_loss(test_label, model.predict_proba(test_x))}
    folder = pathlib.Path(os.environ.get("MLENV_OUTPUT", "."))
    folder.joinpath("metrics.json").write_text(json.dumps(metrics))


if __name__ == "__main__":
    main()
