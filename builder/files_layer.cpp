// The project's own files as a layer.
#include <set>

#include "base/error.hpp"
#include "base/tar.hpp"
#include "builder/base_folders.hpp"
#include "builder/chunked_gzip.hpp"
#include "builder/layers.hpp"
#include "images/tree_writer.hpp"

namespace mlenv {
namespace {

constexpr int kMostLinks = 40;  // path_resolution(7)

class FilesTar {
 public:
  FilesTar(std::int64_t epoch, const BaseFolders& base, Sink& tar, TreeWriter* tree)
      : epoch_(epoch), base_(base), tar_(tar), tree_(tree) {}

  void add(const ProjectFile& file) {
    add_parents(file, file.path);
    switch (file.kind) {
      case ProjectFile::Kind::folder:
        return add_folder(file, file.path);
      case ProjectFile::Kind::symlink:
        return add_symlink(file);
      case ProjectFile::Kind::file:
        return add_file(file);
    }
  }

 private:
  void add_parents(const ProjectFile& file, const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      add_folder(file, path.substr(0, slash));
    }
  }

  void add_folder(const ProjectFile& file, const std::string& path) {
    if (!folders_.insert(path).second) return;
    TarEntry entry = entry_of(path, TarEntry::Type::folder, 0755);
    if (const auto there = base_.find(path); there != base_.end()) {
      if (!there->second.link.empty()) {
        throw usage_error("files-clash", "`{}` cannot be copied to `/{}`: `/{}` is a link to `{}`",
                          file.shown, file.path, path, there->second.link)
            .hint("name the folder that it leads to");
      }
      entry.mode = there->second.mode;
      entry.uid = there->second.uid;
      entry.gid = there->second.gid;
    }
    tar_.write(tar_header(entry));
    if (tree_ != nullptr) tree_->add_folder(path, {entry.mode, entry.uid, entry.gid, epoch_});
  }

  void add_symlink(const ProjectFile& file) {
    check_no_folder(file);
    TarEntry entry = entry_of(file.path, TarEntry::Type::symlink, 0777);
    entry.link = file.link;
    tar_.write(tar_header(entry));
    if (tree_ != nullptr) tree_->add_symlink(file.path, file.link, {0777, 0, 0, epoch_});
  }

  void add_file(const ProjectFile& file) {
    check_no_folder(file);
    TarEntry entry = entry_of(file.path, TarEntry::Type::file, file.executable ? 0755U : 0644U);
    entry.size_bytes = file.size_bytes;
    tar_.write(tar_header(entry));
    if (tree_ != nullptr) {
      tree_->begin_file(file.path, {entry.mode, 0, 0, epoch_}, file.size_bytes);
    }
    FunctionSink content{[this](ByteView bytes) {
      tar_.write(bytes);
      if (tree_ != nullptr) tree_->write(bytes);
    }};
    copy_file(file, content);
    tar_.write(Bytes(tar_padding(file.size_bytes)));
    if (tree_ != nullptr) tree_->end_file();
  }

  /// Nor a link to a folder, as `/bin` is one: programs are found through it.
  void check_no_folder(const ProjectFile& file) const {
    auto there = base_.find(file.path);
    for (int links = 0; there != base_.end() && !there->second.link.empty(); ++links) {
      if (links == kMostLinks) return;
      const fs::path to = ("/" / fs::path(there->first)).parent_path() / there->second.link;
      there = base_.find(to.lexically_normal().relative_path().string());
    }
    if (there == base_.end()) return;
    throw usage_error("files-clash", "`{}` cannot be copied to `/{}`, which is a folder",
                      file.shown, file.path)
        .hint(fmt::format("write `/{}/` to put it into that folder", file.path));
  }

  TarEntry entry_of(const std::string& path, TarEntry::Type type, std::uint32_t mode) const {
    TarEntry entry;
    entry.type = type;
    entry.path = path;
    entry.mode = mode;
    entry.mtime = epoch_;
    return entry;
  }

  std::int64_t epoch_;
  const BaseFolders& base_;
  Sink& tar_;
  TreeWriter* tree_;
  std::set<std::string, std::less<>> folders_;
};

}  // namespace

Layer make_files_layer(const FilesJob& job, Store& store, Pool& pool, bool unpack) {
  const BaseFolders folders = base_folders(store, job.base);
  Store::Staged blob = store.stage();
  std::optional<Store::StagedTree> staged;
  std::optional<TreeWriter> tree;
  if (unpack) {
    staged.emplace(store.stage_tree());
    tree.emplace(staged->fs_path());
    tree->add_folder(".", {.mode = 0755});
  }
  ChunkedGzip gzip{blob.fd(), pool};
  FilesTar tar{job.epoch, folders, gzip, tree ? &*tree : nullptr};
  for (const ProjectFile& file : job.part.files) tar.add(file);
  gzip.write(tar_end());
  Layer layer = gzip.finish(job.part.title);
  if (tree) tree->finish();
  blob.commit(layer.blob.digest);
  if (staged) staged->publish(layer.diff_id);
  return layer;
}

}  // namespace mlenv
