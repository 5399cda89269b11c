"""Trains a small BERT by masked language modelling: a Transformer encoder sees sentences in which some
words are hidden, and learns to say which. The sentences are those of corpus.txt, about animals on a farm."""
import pathlib
import re
import sys

import numpy as np
import tensorflow as tf
from tokenizers import BertWordPieceTokenizer

LENGTH = 16      # tokens of a sentence, its ends included
WIDTH = 64       # of an embedding
HEADS = 4
LAYERS = 2
BATCH = 64
STEPS = 400
MASKED = 0.15    # the share of tokens that must be guessed


def tokenizer_for(corpus):
    """BERT's own, WordPiece, with a vocabulary of the text's words and of pieces for others: sorted, since one
    that the library learns is not the same in each run."""
    words = sorted(set(re.findall(r"[a-z]+|[^a-z\s]", corpus.read_text().lower())))
    letters = sorted(set("".join(words)))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + one for one in letters),
                  *(word for word in words if len(word) > 1)]
    tokenizer = BertWordPieceTokenizer({piece: at for at, piece in enumerate(vocabulary)}, lowercase=True)
    tokenizer.enable_padding(length=LENGTH)
    tokenizer.enable_truncation(LENGTH)
    return tokenizer


def hide(tokens, tokenizer, random):
    """What BERT is shown and where it must answer: of the chosen tokens 80 % are hidden, 10 % are
    others, 10 % stay."""
    special = [tokenizer.token_to_id(name) for name in ("[PAD]", "[CLS]", "[SEP]")]
    chosen = (random.random(tokens.shape) < MASKED) & ~np.isin(tokens, special)
    way = random.random(tokens.shape)
    shown = np.where(chosen & (way < 0.8), tokenizer.token_to_id("[MASK]"), tokens)
    other = random.integers(5, tokenizer.get_vocab_size(), tokens.shape)
    shown = np.where(chosen & (way > 0.9), other, shown)
    return shown.astype("int32"), chosen.astype("float32")


class Positions(tf.keras.layers.Layer):
    """Adds to each token what its place in the sentence is."""

    def build(self, shape):
        self.table = self.add_weight(shape=(LENGTH, WIDTH), initializer="random_normal", name="table")

    def call(self, inputs):
        return inputs + self.table


def encoder(vocabulary):
    """Attention and a feed-forward network, each with a residual connection and normalised after it, as
    in BERT; at the end one score for each word at each place."""
    layers = tf.keras.layers
    tokens = tf.keras.Input((LENGTH,), dtype="int32")
    x = layers.LayerNormalization()(Positions()(layers.Embedding(vocabulary, WIDTH)(tokens)))
    for _ in range(LAYERS):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(x, x))
        inner = layers.Dense(4 * WIDTH, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(WIDTH)(inner))
    return tf.keras.Model(tokens, layers.Dense(vocabulary)(x))


def main():
    tf.keras.utils.set_random_seed(0)
    tf.config.experimental.enable_op_determinism()
    random = np.random.default_rng(0)
    corpus = pathlib.Path(__file__).with_name("corpus.txt")
    tokenizer = tokenizer_for(corpus)
    sentences = np.array([tokenizer.encode(line).ids for line in corpus.read_text().splitlines()])
    model = encoder(tokenizer.get_vocab_size())
    optimiser = tf.keras.optimizers.Adam(2e-3)
    print(f"tensorflow {tf.__version__}, {len(tf.config.list_physical_devices('GPU'))} GPUs, "
          f"{len(sentences)} sentences, {model.count_params()} parameters")

    @tf.function
    def step(shown, wanted, asked):
        with tf.GradientTape() as tape:
            scores = model(shown, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, scores)
            loss = tf.reduce_sum(losses * asked) / tf.reduce_sum(asked)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(gradients, model.trainable_variables))
        right = tf.cast(tf.argmax(scores, -1, output_type=tf.int32) == wanted, tf.float32)
        return loss, tf.reduce_sum(right * asked) / tf.reduce_sum(asked)

    first = None
    for number in range(1, STEPS + 1):
        wanted = sentences[random.integers(len(sentences), size=BATCH)].astype("int32")
        shown, asked = hide(wanted, tokenizer, random)
        loss, right = (float(part) for part in step(shown, wanted, asked))
        first = first if first is not None else loss
        if number % 100 == 0:
            print(f"step {number:4}  loss {loss:.3f}  right {right:.2f}", flush=True)

    def fill(text):
        encoded = tokenizer.encode(text)
        place = encoded.ids.index(tokenizer.token_to_id("[MASK]"))
        scores = model(np.array([encoded.ids], dtype="int32"))[0, place]
        return tokenizer.id_to_token(int(tf.argmax(scores)))

    answers = {text: fill(text) for text in ("the dog [MASK] in the evening .",
                                             "a young cow is called a [MASK] .",
                                             "the [MASK] neighs at noon .")}
    for text, word in answers.items():
        print(text.replace("[MASK]", f"[{word}]"))
    # Other processors round in other ways: one of the three may differ.
    right = sum(word == wanted for word, wanted in zip(answers.values(), ("barks", "calf", "horse")))
    if not loss < first / 3 or right < 2:
        sys.exit("the training did not work")


if __name__ == "__main__":
    main()
