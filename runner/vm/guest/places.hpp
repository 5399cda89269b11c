#pragma once
// What a process of the image finds: root, folders in memory, devices, shared folders, network.
#include <string>
#include <string_view>

namespace mlenv::vm {

/// Does what the text of a setup says (runner/vm/setup.hpp) and makes the image's file system this
/// process's root. Returns why not; empty: it is done.
std::string make_places(std::string_view text);

/// What was written beforehand is there: where the image is not to be written to, only the folder
/// of the setup stays open.
void seal_image();

/// What was written to the shared folders is there; the image's own disk is thrown away.
void sync_shares();

}  // namespace mlenv::vm
