#include "cli/vm_kernel.hpp"

#include <algorithm>
#include <array>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"
#include "builder/inputs.hpp"
#include "cli/settings.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/debian.hpp"

namespace mlenv::cli {
namespace {

/// The oldest first. Other kernels lack what the guest needs of theirs.
constexpr std::array<std::string_view, 3> kSuites{"bullseye", "bookworm", "trixie"};
constexpr std::string_view kUsualSuite = "bookworm";
/// Which depends on the kernel's own package. Not the one for clouds, which cannot share folders.
constexpr const char* kNewest = "linux-image-amd64";
constexpr std::string_view kPrefix = "linux-image-";

/// For those who look for package sources: a recipe of that base.
Recipe recipe_of(const std::string& suite) {
  return parse_recipe(fmt::format("name: kernel\nbase: debian:{}\n", suite), "kernel");
}

bool is_kernel(const LockedDeb& deb) {
  return deb.name.starts_with(kPrefix) && deb.name != kNewest;
}

Lock resolved_kernel(Ui& ui, const std::string& suite, const Recipe& recipe) {
  const Activity activity{ui.progress(), "choosing the virtual machine's kernel"};
  DebianRequest request;
  request.suite = suite;
  request.packages = {{kNewest}};
  request.installed = "";
  auto answer = resolve_debian(request, debian_sources(recipe), ui.http(),
                               cache_folder() / "debian", ui.progress());
  if (const auto* const conflict = std::get_if<Conflict>(&answer)) {
    Error error = failure("no-vm", "Debian's {} has no kernel for a virtual machine", suite);
    for (const std::string& fact : conflict->facts) error.because(fact);
    throw Error{std::move(error)};
  }
  Lock lock;
  lock.request.base = "debian:" + suite;
  lock.settings.name = "kernel";
  lock.settings.workdir = "/";
  lock.distribution = "debian";
  lock.suite = suite;
  for (LockedDeb& deb : std::get<DebianResolution>(answer).debs) {
    if (is_kernel(deb)) lock.debs.push_back(std::move(deb));
  }
  return lock;
}

const LockedDeb& kernel_of(const Lock& lock, const fs::path& file) {
  const auto found = std::find_if(lock.debs.begin(), lock.debs.end(), is_kernel);
  if (found != lock.debs.end()) return *found;
  throw failure("no-vm", "`{}` names no kernel", file.string())
      .hint("remove it: the next run in a virtual machine makes a new one");
}

fs::path kernel_package(Ui& ui, const LockedDeb& deb, const Recipe& recipe, const fs::path& lock) {
  InputSources sources;
  const std::vector<DebianSource> debian = debian_sources(recipe);
  sources.deb_urls = [&](const LockedDeb& one) { return deb_urls(one, debian); };
  Inputs inputs{ui.store(), ui.http(), std::move(sources), cache_folder(), ui.progress()};
  try {
    return inputs.package(deb);
  } catch (const Error& error) {
    if (!is_gone(error)) throw;
    throw failure("no-vm", "the virtual machine's kernel, `{} {}`, is to be had no longer",
                  deb.name, deb.version)
        .because(error.what())
        .hint(fmt::format("remove `{}`: the next run takes the one that there is now",
                          lock.string()));
  }
}

}  // namespace

std::string kernel_suite(std::string_view os_release) {
  std::string id;
  std::string suite;
  for (const std::string_view line : split(os_release, '\n')) {
    const std::size_t equal = line.find('=');
    if (equal == std::string_view::npos) continue;
    std::string_view value = trim(line.substr(equal + 1));
    if (value.size() > 1 && value.front() == '"') value = value.substr(1, value.size() - 2);
    if (line.substr(0, equal) == "ID") id = value;
    if (line.substr(0, equal) == "VERSION_CODENAME") suite = value;
  }
  const bool known = std::find(kSuites.begin(), kSuites.end(), suite) != kSuites.end();
  return id == "debian" && known ? suite : std::string(kUsualSuite);
}

LockedKernel vm_kernel(Ui& ui, const std::string& suite) {
  const fs::path file = ui.store().root() / "vm" / (suite + ".lock");
  const Recipe recipe = recipe_of(suite);
  std::optional<std::string> text = read_file_if_exists(file);
  if (!text) {
    make_own_folders(file.parent_path());
    text = render_lock(resolved_kernel(ui, suite, recipe));
    AtomicFile made{file};
    made.write(as_bytes(*text));
    made.commit();
  }
  const Lock lock = parse_lock(*text, file);
  const LockedDeb& deb = kernel_of(lock, file);
  std::optional<VmKernel> kernel = find_kernel(ui.store(), deb.digest);
  if (!kernel) {
    const fs::path package = kernel_package(ui, deb, recipe, file);
    const Activity activity{ui.progress(), "unpacking the virtual machine's kernel"};
    kernel = unpack_kernel(ui.store(), deb.digest, package);
  }
  return {*std::move(kernel), Digest::of(*text).str()};
}

}  // namespace mlenv::cli
