#pragma once
// Lists of data sets (recipes/data_list.hpp) that links send of: read once for all links that send
// at the same time, and gone when none does.
#include <map>
#include <memory>
#include <string>

#include "images/store.hpp"
#include "recipes/data_list.hpp"

namespace mlenv::job {

class DataLists {
 public:
  /// `store` has the blobs.
  explicit DataLists(const Store& store) : store_(store) {}
  /// `blob` is a digest. Throws as read_data_list does.
  std::shared_ptr<const DataList> of(const std::string& blob);

 private:
  const Store& store_;
  std::map<std::string, std::weak_ptr<const DataList>> lists_;  ///< by their blobs
};

}  // namespace mlenv::job
