// A CPython that the recipe brings along: an archive's files at /opt/python, in the normal form.
#include <sys/stat.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/tree_walk.hpp"
#include "builder/bytecode/compiler.hpp"
#include "builder/debian/normalise.hpp"
#include "builder/layers.hpp"
#include "builder/tree_layer.hpp"
#include "images/tree_writer.hpp"
#include "recipes/resolve/interpreter.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kBatch = 100;  ///< files at once to one compiler

Error bad_python(const std::string& path, std::string_view why) {
  return failure("bad-python", "the archive of Python holds `{}`, {}", path, why)
      .hint("an archive of python-build-standalone, in the form `install_only`, is one that works");
}

bool is_bytecode(std::string_view path) {
  return path.ends_with(".pyc") || path.ends_with("/__pycache__");
}

/// Where a link leads stays below the interpreter's own folder.
bool is_outside_link(const TarEntry& entry) {
  const fs::path own{kOwnPython};
  const fs::path at = own / fs::path(entry.path).parent_path();
  const std::string target = (at / entry.link).lexically_normal().string();
  return !target.starts_with(own.string() + "/");
}

void unpack(const InterpreterJob& job, const fs::path& root) {
  TreeWriter writer{root};
  const std::string below = std::string(kOwnPython).substr(1) + "/";
  const Attributes folder{0755, 0, 0, job.lock.epoch};
  writer.add_folder("opt", folder);
  read_interpreter(job.archive, [&](const TarEntry& given, Source& data) {
    if (given.path.empty() || is_bytecode(given.path)) return;
    TarEntry entry = given;
    entry.path = below + given.path;
    entry.uid = entry.gid = 0;
    entry.mtime = job.lock.epoch;
    entry.xattrs.clear();
    const bool executable = (given.mode & 0100U) != 0;
    switch (given.type) {
      case TarEntry::Type::folder:
        entry.mode = 0755;
        break;
      case TarEntry::Type::file:
        entry.mode = executable ? 0755 : 0644;
        break;
      case TarEntry::Type::symlink:
        if (is_outside_link(given)) throw bad_python(given.path, "a link out of it");
        break;
      case TarEntry::Type::hardlink:
        entry.link = below + given.link;
        break;
      default:
        throw bad_python(given.path, "which is neither file, folder nor link");
    }
    writer.add(entry, data);
  });
  writer.finish();
}

std::string pyc_of(const fs::path& source, const std::string& minor) {
  const std::string digits = "3" + minor.substr(2);
  return source.parent_path() / "__pycache__" /
         fmt::format("{}.cpython-{}.pyc", source.stem().string(), digits);
}

/// Its own modules, compiled by itself; installed packages (pip) too.
void compile(const InterpreterJob& job, const fs::path& root, Pool& pool) {
  const std::string minor = job.lock.python_minor();
  const fs::path library = root / "opt/python/lib" / ("python" + minor);
  std::vector<fs::path> sources;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const bool is_source =
        S_ISREG(entry.status.st_mode) && fs::path(entry.name).extension() == ".py";
    if (is_source) sources.push_back(library / entry.path);
    return true;
  };
  walk_tree(library, walk);
  std::sort(sources.begin(), sources.end());
  BytecodeCompiler compiler{{.base = job.base,
                             .program = fmt::format("{}/bin/python{}", kOwnPython, minor),
                             .opt = root / "opt",
                             .python_minor = std::stoi(minor.substr(2)),
                             .workers = job.jobs}};
  const std::size_t batches = (sources.size() + kBatch - 1) / kBatch;
  std::vector<std::vector<std::string>> compiled(batches);
  pool.for_each(batches, [&](std::size_t batch) {
    std::vector<PythonSource> texts;
    const std::size_t last = std::min(sources.size(), (batch + 1) * kBatch);
    for (std::size_t i = batch * kBatch; i < last; ++i) {
      const std::string in_image = sources[i].string().substr(root.string().size());
      texts.push_back({in_image, read_file(sources[i])});
    }
    compiled[batch] = compiler.compile(texts);
  });
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string& pyc = compiled[i / kBatch][i % kBatch];
    if (pyc.empty()) continue;
    const fs::path path = pyc_of(sources[i], minor);
    make_folders(path.parent_path());
    write_file(path, pyc, /*durable=*/false);
  }
}

/// Whatever the umask is: what was made here has the normal form's modes.
void settle_modes(const fs::path& root) {
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (entry.name != "__pycache__" && fs::path(entry.name).extension() != ".pyc") return true;
    fs::permissions(root / entry.path,
                    S_ISDIR(entry.status.st_mode) ? fs::perms{0755} : fs::perms{0644});
    return true;
  };
  walk_tree(root, walk);
}

}  // namespace

Layer make_interpreter_layer(const InterpreterJob& job, Store& store, Pool& pool) {
  Store::StagedTree staged = store.stage_tree();
  unpack(job, staged.fs_path());
  if (job.lock.settings.bytecode) {
    compile(job, staged.fs_path(), pool);
    settle_modes(staged.fs_path());
    debian::set_times(staged.fs_path(), job.lock.epoch);
  }
  Layer layer = pack_tree({staged.fs_path(), {}, {}, job.lock.epoch, "Python " + job.lock.python},
                          store, pool);
  staged.publish(layer.diff_id);
  return layer;
}

}  // namespace mlenv
