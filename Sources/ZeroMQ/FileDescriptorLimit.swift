import LibC

/// This process’s limit on open file descriptors. libzmq aborts if it reaches the limit while it accepts a connection.
package enum FileDescriptorLimit {
    #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let resource = RLIMIT_NOFILE
    #endif

    /// Raises the limit as far as this user may, and at most to `wanted`. It is never lowered.
    /// - Returns: the effective limit.
    package static func raise(to wanted: Int = 65_536) throws(ZeroMQError) -> Int {
        var limit = try read()
        let target = min(rlim_t(clamping: wanted), limit.rlim_max)
        guard target > limit.rlim_cur else { return Int(clamping: limit.rlim_cur) }
        limit.rlim_cur = target
        guard setrlimit(resource, &limit) == 0 else {
            throw ZeroMQError(call: "setrlimit(RLIMIT_NOFILE)", endpoint: "", number: errno)
        }
        return Int(clamping: target)
    }

    static func read() throws(ZeroMQError) -> rlimit {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else {
            throw ZeroMQError(call: "getrlimit(RLIMIT_NOFILE)", endpoint: "", number: errno)
        }
        return limit
    }
}
