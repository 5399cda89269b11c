#pragma once
// Shared storage by name: a site says once where it is (`storage` of config.yaml, and of a
// job.yaml), and mounts name it: `@scratch/bert:/checkpoints` (docs/storage.md).
#include <map>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "recipes/recipe_reader.hpp"

namespace mlenv {

/// Where each is, by name: absolute, the same on all machines.
using StorageNames = std::map<std::string, std::string>;

/// `{scratch: /mnt/scratch, home: {path: /nfs/home}}`, over what `into` has. What is wrong goes to
/// the reader's mistakes, each with its place.
void read_storage_names(ValueReader& values, const YamlNode& node, StorageNames& into);

/// Whether the source of a mount names storage: it begins with `@`. A folder that is called so is
/// written `./@scratch`.
bool names_storage(std::string_view source);

/// What `@NAME` or `@NAME/FOLDER` means.
struct StoragePlace {
  std::string name;
  fs::path path;
};

/// Of a source that names storage. Throws `unknown-storage` (usage), with the names that there are
/// and the nearest of them; `bad-mount` (usage) for a folder that leads out of it.
StoragePlace storage_place(std::string_view source, const StorageNames& known);

}  // namespace mlenv
