#include "builder/lay_over.hpp"

namespace mlenv {

void lay_over(const fs::path& from, const fs::path& to) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
    const fs::path target = to / entry.path().lexically_relative(from);
    const bool link = entry.is_symlink();
    if (link || fs::is_symlink(target)) fs::remove(target);
    if (link) {
      fs::copy_symlink(entry.path(), target);
    } else if (entry.is_directory()) {
      fs::create_directory(target, entry.path());
    } else {
      fs::copy_file(entry.path(), target, fs::copy_options::overwrite_existing);
    }
  }
}

}  // namespace mlenv
