import LibC

/// Threads of the engine’s own: its library blocks, which the pool of tasks must not.
enum EngineThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `body` on a new thread, which ends with it.
    ///
    /// - Returns: 0, or the error number for which there is no thread.
    static func start(_ body: @escaping @Sendable () -> Void) -> Int32 {
        let retained = Unmanaged.passRetained(Body(body)).toOpaque()
        #if canImport(Darwin)
        var created: pthread_t?
        #else
        var created = pthread_t()
        #endif
        let result = pthread_create(
            &created, nil,
            { argument in
                // Not optional on every system.
                let given: UnsafeMutableRawPointer? = argument
                guard let argument = given else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, retained)
        let thread: pthread_t? = created
        guard result == 0, let thread else {
            Unmanaged<Body>.fromOpaque(retained).release()
            return result == 0 ? EAGAIN : result
        }
        pthread_detach(thread)
        return 0
    }
}
