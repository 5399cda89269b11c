#pragma once
// One function per kind of step: its inputs → its layers, in the store and (when `unpack`)
// unpacked.
#include <string>
#include <string_view>
#include <vector>

#include "base/pool.hpp"
#include "base/progress.hpp"
#include "builder/project_files.hpp"
#include "builder/wheel.hpp"
#include "images/store.hpp"
#include "recipes/image_sources.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// The Debian base; `packages` as for build_debian_base. Always unpacked: it was made as a tree.
Layer make_base_layer(const Lock& lock, const std::vector<fs::path>& packages, Store& store,
                      Pool& pool, Progress& progress);

/// Files with mode 0644.
Layer make_sources_layer(const Lock& lock, const std::vector<ImageFile>& files, Store& store,
                         bool unpack);

struct FilesJob {
  const FilesPart& part;
  const std::vector<Layer>& base;  ///< lowest first
  std::int64_t epoch = 0;
};
/// Files of the project, in the normal form: owner 0:0, modes 0755 and 0644, time `epoch`. A folder
/// that the base has keeps the base's mode and owner. Throws `files-clash` (usage) where `base` has
/// a link in the place of a folder, or a folder in that of a file; `file-changed`.
Layer make_files_layer(const FilesJob& job, Store& store, Pool& pool, bool unpack);

struct InterpreterJob {
  const Lock& lock;
  fs::path archive;  ///< of `lock.interpreter`
  fs::path base;     ///< the base's tree, in which its modules are compiled
  unsigned jobs = 1;
};
/// The recipe's own CPython at /opt/python, in the normal form: owner 0:0, modes 0755 and 0644, the
/// lock's time. Bytecode that it brings is left out (it goes by the files' times) and, unless the
/// lock says `bytecode: false`, made anew by itself. Throws `bad-python`.
Layer make_interpreter_layer(const InterpreterJob& job, Store& store, Pool& pool);

/// The environment's skeleton at /opt/venv: pyvenv.cfg, interpreter links, and `lib/pythonX.Y` as a
/// link to the version-independent `lib/python3`. On top of an image it hides what that has there.
Layer make_environment_layer(const Lock& lock, Store& store, bool unpack);

/// One layer of these wheels, spliced.
Layer make_wheels_layer(const std::vector<WheelFile>& wheels, std::int64_t epoch, std::string title,
                        Store& store, bool unpack);

/// Throws `wheels-clash` when two wheels put different files at one path, `bad-wheel` when one puts
/// files in the place of the environment's link for this Python (`3.11`).
void check_wheels_agree(const std::vector<WheelFile>& wheels, std::string_view python_minor);

}  // namespace mlenv
