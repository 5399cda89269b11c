#pragma once
// Files and folders that mlenv wants in the container, made as its root.
#include "runner/engine/keeper/frames.hpp"

namespace mlenv::keeper {

/// Whether what is there of `path`, links followed, lies in another mount than the root: a folder
/// of the person's, in which nothing of ours is made.
bool leads_into_mount(const char* path);
/// 0, or errno. Those that are made belong to us, the last one as `head` says.
int make_folders(char* path, const FolderHead& head);
/// Of a frame `file`; 0, or errno. Nothing is written into a folder of the person's.
int write_file(Reader reader);
/// Of a frame `link`; the same.
int make_link(Reader reader);
/// Of a frame `mode`; 0, or errno.
int set_mode(Reader reader);

}  // namespace mlenv::keeper
