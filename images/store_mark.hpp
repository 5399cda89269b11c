#pragma once
// Which folders are stores: those with mlenv's mark in them. A folder that holds other things is
// never made one; who reads a project's folder passes by one.
#include <array>

#include "base/files.hpp"

namespace mlenv {

/// The file that says so.
inline constexpr const char* kStoreMark = "mlenv-store";

/// The folders that every store has.
inline constexpr std::array<const char*, 7> kStoreFolders = {"blobs", "spliced", "trees",   "keys",
                                                             "names", "tmp",     "unsynced"};

/// Makes `root` a store where it is empty or not there, or else makes sure that it is one: stores
/// of an earlier mlenv get their mark. Its folders are there afterwards, nobody else may write to
/// them, and none is a link. Throws `not-a-store` for a folder that holds something else.
void settle_store_folder(const fs::path& root);

}  // namespace mlenv
