"""Learns to read hand-written digits with scikit-learn; the data comes with the library."""
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split


def main():
    x, label = load_digits(return_X_y=True)
    train_x, test_x, train_label, test_label = train_test_split(x, label, test_size=0.25,
                                                                random_state=0)
    print(f"scikit-learn {sklearn.__version__}, {len(train_x)} digits to learn from")
    accuracy = 0.0
    model = HistGradientBoostingClassifier(max_iter=5, warm_start=True, random_state=0)
    for rounds in (5, 10, 20, 40):
        model.set_params(max_iter=rounds)
        model.fit(train_x, train_label)
        accuracy = model.score(test_x, test_label)
        print(f"{rounds:3} rounds  accuracy {accuracy:.3f}", flush=True)
    if accuracy < 0.95:
        raise SystemExit("the training did not work")


if __name__ == "__main__":
    main()
