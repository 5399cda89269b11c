#pragma once
// Canonical bytecode. What `marshal.dumps` writes for a code object depends on what else the
// process had interned and shared (reference counts decide where FLAG_REF stands), so that
// compiling in another order, in parallel or on another machine gives other bytes for equal code.
// Here the object graph is read, equal constants become one, and it is written again by fixed
// rules:
//   - strings, bytes, numbers, tuples and frozensets are shared by value, code objects never;
//   - FLAG_REF stands exactly on what is referred to again;
//   - a string is interned when CPython would intern it (all name characters, or one character);
//   - frozensets are sorted by their bytes.
// The result loads to equal code and is idempotent. (Python/marshal.c of CPython 3.9–3.13.)
#include <string>

#include "base/bytes.hpp"

namespace mlenv {

/// Whether code objects of this minor version (`11` for 3.11) can be read.
bool marshal_supported(int python_minor);

/// `marshalled` is one code object as `marshal.dumps` wrote it, without the .pyc header. Throws
/// `bad-bytecode` when it is not what this Python version writes.
std::string canonical_marshal(ByteView marshalled, int python_minor);

}  // namespace mlenv
