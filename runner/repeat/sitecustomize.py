"""Seeds and deterministic algorithms for a run of `mlenv run --deterministic`.

Python imports this at its start (module `site`). It does nothing by itself but wait for the libraries
below: when the program has imported one, it is seeded and told to be deterministic, once. Nothing
here may break the program: what fails is told on standard error. Runs on Python 3.9 and newer.
"""
import os
import sys


def _say(what, error):
    try:
        sys.stderr.write("mlenv: --deterministic: %s: %s: %s\n" % (what, type(error).__name__, error))
    except Exception:  # standard error is closed
        pass


def _seed():
    try:
        return int(os.environ.get("MLENV_SEED", "0")) % 2**32
    except ValueError as error:
        _say("MLENV_SEED", error)
        return 0


def _random(module):
    module.seed(_seed())


def _numpy(module):
    module.random.seed(_seed())


def _numpy_entropy(module):
    # numpy.random.SeedSequence takes its entropy from this name when it is given none, and so does
    # default_rng() without a seed: from here on a sequence that the seed decides.
    if hasattr(module, "randbits"):
        import random

        module.randbits = random.Random("numpy %d" % _seed()).getrandbits


def _torch(module):
    module.manual_seed(_seed())  # the processor's, and each GPU's when it is first used
    module.use_deterministic_algorithms(True)
    module.backends.cudnn.benchmark = False
    module.backends.cudnn.deterministic = True


def _tensorflow(module):
    module.random.set_seed(_seed())
    module.config.experimental.enable_op_determinism()


def _keras(module):
    # It seeds `random` and NumPy anew, where the program may have chosen other seeds by now.
    import random

    before = random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_before = numpy.random.get_state() if numpy else None
    try:
        module.utils.set_random_seed(_seed())
    finally:
        random.setstate(before)
        if numpy:
            numpy.random.set_state(numpy_before)


_waiting = {
    "random": _random,
    "numpy": _numpy,
    "numpy.random.bit_generator": _numpy_entropy,
    "torch": _torch,
    "tensorflow": _tensorflow,
    "keras": _keras,
}


def _settle(name, module):
    work = _waiting.pop(name, None)
    if work is None:
        return
    try:
        work(module)
    except Exception as error:
        _say(name, error)


class _Finder:
    """Finds nothing itself: lets the loader that others find tell when its module is there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is _Finder or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                _watch(name, spec.loader)
                return spec
        return None


def _watch(name, loader):
    if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
        return  # built into the interpreter, or a loader of the oldest kind

    def exec_module(module):
        del loader.exec_module
        loader.exec_module(module)
        _settle(name, module)

    try:
        loader.exec_module = exec_module
    except Exception as error:
        _say(name, error)


def _begin():
    for name in list(_waiting):
        if name in sys.modules:
            _settle(name, sys.modules[name])
    sys.meta_path.insert(0, _Finder)


def _other_sitecustomize():
    """The one that this file hides: it takes our place, as if we were not there."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

    here = os.path.realpath(os.path.dirname(__file__))
    others = [one for one in sys.path if os.path.realpath(one or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # what it raises is `site`'s to tell, as ever


try:
    _begin()
except Exception as _error:
    _say("sitecustomize", _error)
_other_sitecustomize()
