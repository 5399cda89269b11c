#include "builder/debian/database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "builder/debian/beneath.hpp"

namespace mlenv::debian {
namespace {

/// Paths as the archive has them, without those that another package took over.
std::string file_list(const Package& package, const std::set<std::string>& lost) {
  std::string list;
  for (const TarEntry& entry : package.entries) {
    if (lost.contains(entry.path)) continue;
    list += entry.path == "." ? "/." : "/" + entry.path;
    list += '\n';
  }
  return list;
}

std::string status_stanza(const Tree& tree, const Package& package) {
  std::string text = package.stanza;
  while (text.ends_with('\n')) text.pop_back();
  const std::string name_line = "Package: " + package.name + "\n";
  const std::size_t at = text.find(name_line);
  const std::size_t after = at == std::string::npos ? 0 : at + name_line.size();
  text.insert(after, "Status: install ok unpacked\n");
  text += '\n';
  std::string conffiles;
  const Fd root = open_file(tree.root(), O_PATH | O_DIRECTORY);
  for (const std::string& path : package.conffiles()) {
    const auto content = read_inside(root.get(), path.substr(1));
    if (content) conffiles += fmt::format(" {} {}\n", path, md5_hex(as_bytes(*content)));
  }
  if (!conffiles.empty()) text += "Conffiles:\n" + conffiles;
  return text;
}

}  // namespace

void write_database(Tree& tree, const std::vector<Package>& packages) {
  require_real_folders(tree.root());
  const fs::path folder = tree.root() / "var/lib/dpkg";
  for (const char* name : {"info", "updates", "triggers", "alternatives", "parts"}) {
    make_folders(folder / name);
    if (::chmod((folder / name).c_str(), 0755) != 0) throw os_error(errno, "cannot set a mode");
  }
  std::map<std::pair<std::string, std::string>, std::string> stanzas;
  for (std::size_t i = 0; i < packages.size(); ++i) {
    const Package& package = packages[i];
    const std::string base = package.info_name();
    for (const auto& [name, file] : package.control) {
      if (name != "control")
        write_with_mode(folder / "info" / fmt::format("{}.{}", base, name), file.text, file.mode);
      if (package.control.contains("preinst")) {
        make_folders(tree.root() / kPreinstFolder / base);
        write_with_mode(tree.root() / kPreinstFolder / base / name, file.text, file.mode);
      }
    }
    write_with_mode(folder / "info" / (base + ".list"), file_list(package, tree.lost(i)), 0644);
    stanzas[{package.name, package.architecture}] = status_stanza(tree, package);
  }
  std::string status;
  for (const auto& [key, stanza] : stanzas) {
    if (!status.empty()) status += '\n';
    status += stanza;
  }
  status += '\n';
  write_with_mode(folder / "status", status, 0644);
  write_with_mode(folder / "available", "", 0644);
  write_with_mode(folder / "info/format", "1\n", 0644);
}

}  // namespace mlenv::debian
