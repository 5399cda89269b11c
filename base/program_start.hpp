#pragma once
// What a strange caller may hand over, and no program of ours takes as it comes. The first thing in
// main, before anything is opened.

namespace mlenv {

/// Standard streams are open, other descriptors closed (base/descriptors.hpp), no signal blocked,
/// SIGCHLD and SIGPIPE not ignored (that of others stays: nohup(1)), a file beyond the limit of its
/// size is an error of write(2), the umask leaves us our own files and lets not everybody write
/// them, no variable is there twice, and none by which a service manager passes on descriptors and
/// a socket: container runtimes would take them for theirs. Ends the process (125) where there is
/// no /dev/null to stand in for a missing stream.
void begin_program(int argc, char** argv);

}  // namespace mlenv
