import FoundationEssentials

/// The resources of this process, as reported by the kernel.
package enum ThisProcess {
    /// The number of open descriptors.
    package static var descriptors: Int { names("/proc/self/fd").count }

    /// The number of threads.
    package static var threads: Int { names("/proc/self/task").count }

    /// The names of the threads.
    package static var threadNames: [String] {
        names("/proc/self/task").compactMap { task in
            FileManager.default.contents(atPath: "/proc/self/task/\(task)/comm").map {
                String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
            }
        }
    }

    /// The resident memory, in bytes.
    package static var residentMemory: Int {
        let fields = (FileManager.default.contents(atPath: "/proc/self/statm") ?? Data()).split(
            separator: UInt8(ascii: " "))
        let pages = fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)) ?? 0 : 0
        return pages * 4_096
    }

    private static func names(_ path: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    }
}
