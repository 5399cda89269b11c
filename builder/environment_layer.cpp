#include <fmt/format.h>

#include "builder/layers.hpp"
#include "builder/staged_layer.hpp"

namespace mlenv {

Layer make_environment_layer(const Lock& lock, Store& store, bool unpack) {
  StagedLayer staged{store, lock.epoch, unpack};
  LayerWriter& writer = staged.writer();
  const std::string root{kVenv};
  const std::string minor = lock.python_minor();
  const std::string interpreter = "python" + minor;
  // What the base has there is another environment.
  if (lock.base) writer.add_opaque_folder(root);
  writer.add_symlink(root + "/bin/python", lock.python_program());
  writer.add_symlink(root + "/bin/python3", "python");
  writer.add_symlink(root + "/bin/" + interpreter, "python");
  writer.add_folder(root + "/include/site/python3");
  writer.add_symlink(root + "/include/site/" + interpreter, "python3");
  writer.add_folder(std::string(kSitePackages));
  writer.add_symlink(root + "/lib/" + interpreter, "python3");
  writer.add_symlink(root + "/lib64", "lib");
  writer.add_text(root + "/pyvenv.cfg", 0644,
                  fmt::format("home = {}\nimplementation = CPython\nversion_info = {}\n"
                              "include-system-site-packages = false\n",
                              fs::path(lock.python_program()).parent_path().string(), lock.python));
  return staged.publish("environment for Python " + minor);
}

}  // namespace mlenv
