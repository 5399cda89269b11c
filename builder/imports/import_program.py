"""Imports each top-level package of /opt/venv once; for Python 3.8 and later.

Its arguments are the distributions to begin with. Each answer is a line of JSON:
package, version, import, error (empty: it came in), module (that is nowhere).
"""
import importlib.metadata, json, os, select, signal, sys, time

LIMIT = 120
PARTS_OF_A_PROJECT = {'setup', 'conftest', 'test', 'tests', 'testing', 'docs', 'doc', 'examples', 'example', 'benchmarks', 'benchmark', 'scripts', 'tools'}

def top_levels(distribution):
    """Names that an import statement takes: the shortest packages, and modules beside them."""
    found = set()
    for file in distribution.files or []:
        parts = file.parts
        if parts[0] == '..' or parts[0].endswith(('.dist-info', '.egg-info', '.data')):
            continue
        if len(parts) == 1:
            name, dot, ending = parts[0].partition('.')
            if ending == 'py' or (ending.endswith('so') and not name.startswith('lib')):
                found.add(name)
        elif parts[-1] == '__init__.py' and len(parts) <= 4:
            found.add('.'.join(parts[:-1]))
    names = sorted(name for name in found if all(part.isidentifier() for part in name.split('.')))
    tops = [name for name in names if not any(name.startswith(other + '.') for other in names)]
    return [name for name in tops
            if not name.startswith('_') and name.split('.')[0] not in PARTS_OF_A_PROJECT]

def one_import(name, answer):
    with open(os.devnull, 'r+b', buffering=0) as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    try:
        __import__(name)
        said = {'modules': sorted(name for name in list(sys.modules))}
    except BaseException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        said = {'error': type(error).__name__ + (': ' + lines[0].strip() if lines else '')}
        cause = error
        while cause is not None:
            if isinstance(cause, ModuleNotFoundError) and cause.name:
                said['module'] = cause.name
            cause = cause.__cause__
    os.write(answer, json.dumps(said).encode())
    os._exit(0)

def imported(name):
    """What became of it, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        one_import(name, writing)
    os.close(writing)
    said = b''
    end = time.monotonic() + LIMIT
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            break
        part = os.read(reading, 65536)
        if not part:
            break
        said += part
    os.close(reading)
    late = time.monotonic() >= end
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass
    status = os.waitpid(child, 0)[1]
    try:
        return json.loads(said)
    except ValueError:
        pass
    if late:
        return {'error': 'no end within %d seconds' % LIMIT}
    if os.WIFSIGNALED(status):
        return {'error': 'ended by ' + signal.Signals(os.WTERMSIG(status)).name}
    return {'error': 'ended with status %d' % os.WEXITSTATUS(status)}

def normalised(name):
    return name.lower().replace('_', '-').replace('.', '-')

first = {name: number for number, name in enumerate(sys.argv[1:])}
distributions = {}
for one in importlib.metadata.distributions(path=[p for p in sys.path if '/opt/venv/' in p]):
    if one.metadata['Name']:
        distributions.setdefault(normalised(one.metadata['Name']), one)
came_in = set()
for name in sorted(distributions, key=lambda name: (first.get(name, len(first)), name)):
    for module in top_levels(distributions[name]):
        if module in came_in:
            said = {}
        else:
            said = imported(module)
            came_in.update(said.pop('modules', []))
        print(json.dumps({'package': name, 'version': distributions[name].version, 'import': module,
                          'error': said.get('error', ''), 'module': said.get('module', '')}), flush=True)
