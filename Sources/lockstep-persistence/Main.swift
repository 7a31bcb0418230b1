import PersistenceService

@main
struct Main {
    static func main() async {
        await PersistenceProcess.run()
    }
}
