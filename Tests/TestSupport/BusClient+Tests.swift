package import BusKit
package import Logging

extension BusClient {
    /// Runs a client for the duration of `body`.
    package static func with<Result: Sendable>(
        runDirectory: String, origin: String, observes: TopicSelection?, logger: Logger,
        _ body: @Sendable (BusClient) async throws -> Result
    ) async throws -> Result {
        let client = BusClient(runDirectory: runDirectory, origin: origin, observes: observes, logger: logger)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            let result: Result
            do {
                result = try await body(client)
            } catch {
                await client.shutdown()
                try? await group.waitForAll()
                throw error
            }
            await client.shutdown()
            try await group.waitForAll()
            return result
        }
    }

    /// Returns the updates from now on, as `subscribe()` describes them.
    package func updates() -> AsyncStream<ReplicaUpdate> {
        let subscription = subscribe()
        return AsyncStream { await subscription.feed.next() }
    }
}
