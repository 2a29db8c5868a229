// What tests share of the headers of others is precompiled beside this file.
// SPDX-License-Identifier: MIT
int main() { return 0; }
