#include "builder/layer_writer.hpp"
#include "builder/layers.hpp"

#include <optional>

#include <fmt/format.h>

namespace mlenv {

Layer make_environment_layer(const Lock& lock, Store& store, bool unpack) {
  std::optional<Store::StagedTree> staged;
  std::optional<TreeWriter> tree;
  if (unpack) {
    staged.emplace(store.stage_tree());
    tree.emplace(staged->fs_path());
  }
  LayerWriter writer{tree ? &*tree : nullptr, lock.epoch};
  const std::string root{kVenv};
  const std::string minor = lock.python_minor();
  const std::string interpreter = "python" + minor;
  writer.add_symlink(root + "/bin/python", "/usr/bin/" + interpreter);
  writer.add_symlink(root + "/bin/python3", "python");
  writer.add_symlink(root + "/bin/" + interpreter, "python");
  writer.add_folder(root + "/include/site/python3");
  writer.add_symlink(root + "/include/site/" + interpreter, "python3");
  writer.add_folder(std::string(kSitePackages));
  writer.add_symlink(root + "/lib/" + interpreter, "python3");
  writer.add_symlink(root + "/lib64", "lib");
  writer.add_text(root + "/pyvenv.cfg", 0644,
                  fmt::format("home = /usr/bin\nimplementation = CPython\nversion_info = {}\n"
                              "include-system-site-packages = false\n",
                              lock.python));
  MadeLayer made = writer.finish("environment for Python " + minor);
  store.put_spliced(made.layer.blob.digest, made.layer.blob.size_bytes, made.spliced);
  if (staged) staged->publish(made.layer.diff_id);
  return std::move(made.layer);
}

}  // namespace mlenv
