#pragma once
// From the files that images lie in into the store. For images/archive_*.cpp only.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"
#include "base/progress.hpp"
#include "images/archive_members.hpp"
#include "images/store.hpp"

namespace mlenv {

/// What an entry of index.json is selected by; empty: it has none.
struct EntryNames {
  std::string ref_name;   ///< `org.opencontainers.image.ref.name`: a tag, of some programs a name
  std::string full_name;  ///< `io.containerd.image.name`: `host/repository:tag`
};
EntryNames names_of_entry(const nlohmann::json& entry);

/// Of an entry in Docker's manifest.json: `repository:tag`, each. Throws as nlohmann-json does.
std::set<std::string> repo_tags(const nlohmann::json& entry);

/// Blobs of its layers, one for each.
std::vector<Descriptor> layers_of(const Image& image);

/// "`a`, `b`"
std::string quoted_list(const std::set<std::string>& names);

class ArchiveBlobs {
 public:
  /// `shown`: what messages call the file or folder.
  ArchiveBlobs(Store& store, ArchiveMembers& members, std::string shown, Progress& progress)
      : store_(store), members_(members), shown_(std::move(shown)), progress_(progress) {}
  const std::string& shown() const { return shown_; }

  bool has_document(const std::string& name) const { return members_.has(name); }
  /// A JSON file that the form is not without. Throws `bad-image` where it is absent or malformed,
  /// `too-large` where ArchiveMembers::text() does not keep it.
  nlohmann::json document(const std::string& name);
  /// Runs `read`; what the JSON library throws becomes `bad-image`.
  static void reading(const std::string& what, const std::function<void()>& read);
  /// The bytes of a manifest, config or index. Throws as document() where the layout lacks it,
  /// `digest-mismatch`.
  std::string blob(const Digest& digest);
  bool holds(const Digest& digest) const;  ///< the layout, whatever the store has
  /// With its config; its layers are not looked at. Throws what `blob` throws.
  Image image(std::string manifest);
  /// Brings into the store what it lacks of these, each verified. Throws what `blob` throws.
  void fetch(const std::vector<Descriptor>& blobs);
  /// The images of entries of Docker's manifest.json, their layers in the store. There are no
  /// manifests in such an archive: those made here are functions of config and layers.
  std::vector<Image> docker_images(const std::vector<nlohmann::json>& entries);
  /// `names` are those that there are.
  Error no_such_image(const std::string& tag, const std::set<std::string>& names) const;

 private:
  Error lacks(const std::string& name) const;
  std::map<std::string, Descriptor> take_layers(const std::set<std::string>& names);

  Store& store_;
  ArchiveMembers& members_;
  std::string shown_;
  Progress& progress_;
};

}  // namespace mlenv
