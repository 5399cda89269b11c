#pragma once
// Small records that the store keeps under a key: JSON with a schema of its own.
#include <functional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "images/store.hpp"

namespace mlenv {

/// Hands `read` what is remembered under the key and answers what it says: whether the record is of
/// use. False too where there is none, or one of another schema, and where `read` throws an Error
/// or misses something: another version's, which is to be made again.
bool recall(const Store& store, const Digest& key, std::string_view schema,
            const std::function<bool(const nlohmann::json&)>& read);

/// `record` is an object, which gains its `schema`.
void remember(Store& store, const Digest& key, std::string_view schema, nlohmann::json record);

}  // namespace mlenv
