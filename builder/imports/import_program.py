"""Imports what its arguments name, `a.b` or `a.b:c,d`, in turn; for Python 3.6 and later.

What was its standard output is for the answer: `imported`, or `failed`, the error and the module
that is nowhere, each after a NUL. Nothing else is loaded for it, so that the name finds the
interpreter as a program does.
"""
import os
import sys

def first_line(error):
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:
        lines = []
    return type(error).__name__ + (': ' + lines[0].replace('\0', ' ') if lines else '')

def missing_module(error):
    name = ''
    for _ in range(32):
        if error is None:
            break
        if isinstance(error, ModuleNotFoundError) and isinstance(error.name, str):
            name = error.name
        error = error.__cause__
    return name

def take(what):
    module, _, names = what.partition(':')
    __import__(module)
    for name in names.split(',') if names else ():
        if hasattr(sys.modules[module], name):
            continue
        part = module + '.' + name
        try:
            __import__(part)
        except ModuleNotFoundError as error:
            if error.name not in (part, module):
                raise
            raise ImportError('cannot import name %r from %r' % (name, module)) from None

def main(all):
    answer = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.argv[1:] = []
    sys.path[:] = [place for place in sys.path if place]
    try:
        for what in all:
            take(what)
        said = 'imported'
    except BaseException as error:
        said = '\0'.join(('failed', first_line(error)[:2000], missing_module(error)[:200]))
    os.write(answer, said.encode('utf-8', 'backslashreplace'))
    os._exit(0)

main(sys.argv[1:])
