import PodcastModel
import Testing
import WireMessages

@Suite struct ServiceCatalogTests {
    @Test func `the catalog lists each service after those that it requires`() {
        var known: Set<ServiceName> = []
        for service in ServiceCatalog.all {
            #expect(Set(service.requires).isSubset(of: known), "\(service.name)")
            #expect(known.insert(service.name).inserted, "\(service.name)")
        }
    }

    @Test func `every service with a program accepts requests, except for the bus`() {
        let silent = ServiceCatalog.all.filter { $0.request == nil && $0.start != .planned }
        #expect(silent.map(\.name) == [.bus])
    }

    @Test(arguments: SettingKey.allCases)
    func `the owner of each setting has a request for settings`(key: SettingKey) {
        #expect(ServiceCatalog[key.rule.owner]?.request is any SettingRequest.Type)
    }
}
