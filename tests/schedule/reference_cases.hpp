// The operations of the reference folder `schedules`: one function each, given one case.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <nlohmann/json_fwd.hpp>

namespace backsweep::test {

/// Chains with more advances than this are not played, only predicted.
inline constexpr Index longest_play = 2000000;

void revolve_case(const nlohmann::json& test);
void revolve_inverse_case(const nlohmann::json& test);
void binomial_range_case(const nlohmann::json& test);
void online_completion_case(const nlohmann::json& test);
void multistage_case(const nlohmann::json& test);
void hrevolve_case(const nlohmann::json& test);
void disk_revolve_case(const nlohmann::json& test);
void periodic_disk_case(const nlohmann::json& test);
void twolevel_case(const nlohmann::json& test);
void mixed_tape_case(const nlohmann::json& test);
void gruslys_case(const nlohmann::json& test);
void nonuniform_case(const nlohmann::json& test);
void uniform_segments_case(const nlohmann::json& test);
void rotor_chain_case(const nlohmann::json& test);
void dag_small_case(const nlohmann::json& test);

}  // namespace backsweep::test
