#pragma once
// What a container that starts anew does not find again, but for the files on its disk.

namespace mlenv::keeper {

/// What lies in a folder in memory; one of a disk has been mounted in its place, and is not ours.
void clear_memory(const char* path);
/// System V's shared memory, semaphores and queues.
void clear_ipc();

}  // namespace mlenv::keeper
