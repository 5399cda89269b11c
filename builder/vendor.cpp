#include "builder/vendor.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "recipes/vendored.hpp"

namespace mlenv {
namespace {

constexpr unsigned kVendorDownloads = 8;

/// One file, and how it is had.
struct WantedFile {
  VendoredFile what;
  std::function<std::unique_ptr<Source>()> open;
};

std::unique_ptr<Source> open_path(const fs::path& path) {
  /// Reads a file that it owns.
  class OwnedSource final : public Source {
   public:
    explicit OwnedSource(Fd fd) : fd_(std::move(fd)), source_(fd_.get()) {}
    std::size_t read(ByteSpan out) override { return source_.read(out); }

   private:
    Fd fd_;
    FdSource source_;
  };
  return std::make_unique<OwnedSource>(open_file(path));
}

class Vendor {
 public:
  Vendor(const Lock& lock, const fs::path& folder, Store& store, Inputs& inputs, Progress& progress)
      : lock_(lock), folder_(folder), store_(store), inputs_(inputs), progress_(progress) {}

  std::vector<VendoredFile> run() {
    make_folders(folder_);
    list();
    Pool pool{kVendorDownloads};
    pool.for_each(wanted_.size(), [&](std::size_t i) {
      VendoredFile& what = wanted_[i].what;
      what.fetched = !is_intact(what.path, what.file.size_bytes, what.file.digest);
      if (!what.fetched || !fs::exists(fs::symlink_status(what.path))) return;
      // Whoever put that there may want it.
      what.path = folder_ / what.file.digest.hex();
      what.fetched = !is_intact(what.path, what.file.size_bytes, what.file.digest);
    });
    std::set<std::string> names;
    for (const WantedFile& one : wanted_) {
      if (one.what.fetched) names.insert(one.what.path.filename().string());
    }
    mark_vendored(folder_, names);
    try {
      fetch(pool);
    } catch (const Error& error) {
      if (!is_gone(error)) throw;
      throw inputs_.all_gone(error, needs());
    }
    std::vector<VendoredFile> files;
    files.reserve(wanted_.size());
    for (WantedFile& one : wanted_) files.push_back(std::move(one.what));
    std::sort(files.begin(), files.end(),
              [](const VendoredFile& a, const VendoredFile& b) { return a.path < b.path; });
    return files;
  }

 private:
  void add(const LockedFile& file, std::function<std::unique_ptr<Source>()> open) {
    const auto [name, fresh] = names_.emplace(file.file, file.digest);
    if (!fresh && name->second == file.digest) return;
    const fs::path path = folder_ / (fresh ? file.file : file.digest.hex());
    wanted_.push_back({{file, path, false}, std::move(open)});
  }

  void list() {
    // Tools of two releases may be the same, and a wheel of the image one of them.
    for (const auto* wheels : {&lock_.wheels, &lock_.build_wheels}) {
      for (const LockedWheel& wheel : *wheels) {
        add(locked_file(wheel), [&] { return open_path(inputs_.wheel(wheel)); });
      }
    }
    for (const LockedSource& source : lock_.sources) {
      // What lies beside the recipe is its own; the wheel made of it, or of a repository, is among
      // the wheels.
      if (source.is_direct() && source.url.empty()) continue;
      add(locked_file(source), [&] { return open_path(inputs_.source(source)); });
    }
    for (const LockedDeb& deb : lock_.debs) {
      add(locked_file(deb), [&] { return open_path(inputs_.package(deb)); });
    }
    if (lock_.interpreter) {
      add(locked_file(*lock_.interpreter),
          [&] { return open_path(inputs_.python(*lock_.interpreter)); });
    }
    if (!lock_.base) return;
    for (const LockedFile& file : base_files(*lock_.base)) {
      add(file, [this, digest = file.digest] { return store_.open(digest); });
    }
  }

  bool is_missing(const Digest& digest) const {
    return std::any_of(wanted_.begin(), wanted_.end(), [&](const WantedFile& one) {
      return one.what.fetched && one.what.file.digest == digest;
    });
  }

  InputNeeds needs() const {
    InputNeeds needs;
    for (const auto* wheels : {&lock_.wheels, &lock_.build_wheels}) {
      for (const LockedWheel& wheel : *wheels) {
        if (is_missing(wheel.digest)) needs.wheels.push_back(wheel);
      }
    }
    for (const LockedDeb& deb : lock_.debs) {
      if (is_missing(deb.digest)) needs.debs.push_back(deb);
    }
    if (lock_.interpreter && is_missing(lock_.interpreter->digest)) {
      needs.python = lock_.interpreter;
    }
    return needs;
  }

  void fetch(Pool& pool) {
    const InputNeeds missing = needs();
    if (!missing.wheels.empty()) inputs_.locate(missing.wheels);
    if (lock_.base) {
      const std::vector<LockedFile> files = base_files(*lock_.base);
      if (std::any_of(files.begin(), files.end(),
                      [&](const LockedFile& file) { return is_missing(file.digest); })) {
        inputs_.base_image(*lock_.base);
      }
    }
    Activity activity{progress_, "vendor files", wanted_.size(), "files"};
    std::mutex mutex;
    std::optional<Error> gone;
    pool.for_each(wanted_.size(), [&](std::size_t i) {
      try {
        if (wanted_[i].what.fetched) write(wanted_[i]);
      } catch (const Error& error) {
        if (!is_gone(error)) throw;
        const std::lock_guard lock{mutex};
        gone = error;
      }
      activity.advance(1);
    });
    if (gone) throw Error{*std::move(gone)};
  }

  static void write(const WantedFile& one) {
    const LockedFile& file = one.what.file;
    const std::unique_ptr<Source> source = one.open();
    AtomicFile target{one.what.path};
    FdSink sink{target.fd()};
    VerifyingSink verified{sink, file.digest, file.size_bytes, file.file};
    copy(*source, verified);
    verified.finish();
    target.commit();
  }

  const Lock& lock_;
  const fs::path& folder_;
  Store& store_;
  Inputs& inputs_;
  Progress& progress_;
  std::map<std::string, Digest> names_;
  std::vector<WantedFile> wanted_;
};

}  // namespace

std::vector<VendoredFile> vendor(const Lock& lock, const fs::path& folder, Store& store,
                                 Inputs& inputs, Progress& progress) {
  return Vendor{lock, folder, store, inputs, progress}.run();
}

}  // namespace mlenv
